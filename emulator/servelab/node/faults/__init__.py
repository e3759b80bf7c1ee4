"""What goes wrong on purpose: faults as data, when they hold, and what is said of them."""
