"""Running Perdure, and the tests themselves, as processes."""
