"""Names of ``torch.cuda`` beyond the runtime."""
