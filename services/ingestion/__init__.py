"""From bytes to something people can find, cite and trust."""
