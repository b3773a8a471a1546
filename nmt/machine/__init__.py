"""What a computer can do: processor, memory, device, compiled C; nothing about translation."""
