"""Methods as the public CoAst research code computes them, faults included."""
