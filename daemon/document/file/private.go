package file

import (
	"path/filepath"
	"slices"
	"strings"
)

// privateFolders hold keys and passwords, whatever the names of the files in them.
var privateFolders = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".password-store",
	"keyrings", "keychains", // of GNOME and of macOS
}

// privateNames are files that hold keys and passwords.
var privateNames = []string{
	".netrc", "_netrc", ".pgpass", ".git-credentials", ".npmrc", ".pypirc", ".vault-token",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
}

// privateEnds are ends of the names of such files.
var privateEnds = []string{
	".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".keyring", ".keychain", ".keychain-db", ".ppk", ".gpg",
}

// Private reports whether a path suggests that a file holds keys or passwords. Letter case does not count.
func Private(path string) bool {
	parts := strings.Split(filepath.ToSlash(strings.ToLower(path)), "/")
	folders, name := parts[:len(parts)-1], parts[len(parts)-1]
	return slices.ContainsFunc(folders, func(f string) bool { return slices.Contains(privateFolders, f) }) ||
		strings.HasPrefix(name, ".env") || slices.Contains(privateNames, name) ||
		slices.ContainsFunc(privateEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// checkPrivate refuses a file whose resolved path is Private. Only a person's own command can link one, so a document
// whose own name is Private was permitted when it was linked. A link that took its place since was not.
func (f *Folder) checkPrivate(name, path string, finding bool) error {
	if !Private(path) || finding && f.AllowPrivate || !finding && path == f.Path(name) {
		return nil
	}
	return refuse("if you want it sent, run `ccship link add --allow-secret PATH` in a terminal of your own",
		"%s is a file for keys or passwords by its name", name)
}
