package project

import (
	"path/filepath"
	"strings"
)

// The hook keeps its files in a folder of the project.
const (
	folderName      = ".codetracker"
	configName      = "config.json"
	credentialsName = "credentials.json"
)

// CredentialsPath returns the file in which the project in dir keeps the key of its server.
func CredentialsPath(dir string) string { return filepath.Join(dir, folderName, credentialsName) }

// IsCredentials reports whether a path names the credentials of any project. It ignores case, because on some systems
// case makes no difference.
func IsCredentials(path string) bool {
	return strings.EqualFold(filepath.Base(path), credentialsName) &&
		strings.EqualFold(filepath.Base(filepath.Dir(path)), folderName)
}
