"""Neural network modules, functions and initialisers."""
