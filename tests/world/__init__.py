"""A whole Perdure in the test's own process, with people, spaces and engines that remember."""
