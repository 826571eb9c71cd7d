package sys

// SyncFolder does nothing: Windows keeps the names of a folder safe by itself, and cannot flush one.
func SyncFolder(string) error { return nil }
