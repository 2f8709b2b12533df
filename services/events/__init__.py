"""Facts on their way out: the relay, the reconciler, rebuilds and the hub that feeds open streams."""
