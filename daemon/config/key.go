package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// maxKeyFile is larger than any key, in bytes; a larger file was named by mistake.
const maxKeyFile = 16 << 10

// ReadAPIKey reads the key for a server. Only the owner may be able to read the file (on Windows access lists decide
// that, which are not checked), and it must hold the key on one line. The error is a *Error, and fs.ErrNotExist when
// the file is missing.
func ReadAPIKey(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe could block forever
		return "", notKeyFile(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", &Error{
			Message: fmt.Sprintf("read API key: %v", err),
			Hint:    "write the key into that file and `chmod 600` it, or name another one with api_key_file",
			Cause:   err,
		}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", &Error{Message: fmt.Sprintf("read API key: %v", err),
			Hint: "name a file that can be read with api_key_file", Cause: err}
	}
	if !info.Mode().IsRegular() {
		return "", notKeyFile(path)
	}
	if !othersKeepOut(info.Mode()) {
		return "", &Error{
			Message: fmt.Sprintf("API key file %s is readable or writable by others (mode %04o)", path, info.Mode().Perm()),
			Hint:    "`chmod 600 " + path + "`",
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return "", &Error{Message: fmt.Sprintf("read API key: %v", err),
			Hint: "name a file that can be read with api_key_file", Cause: err}
	}
	return CheckAPIKey("API key file "+path, string(text))
}

// APIKey reads the key file with the key for the user's own server. It is "" when the file of the default name is
// missing, for a server without keys; a missing file that was named explicitly is an error. See ReadAPIKey.
func (c Config) APIKey() (string, error) {
	key, err := ReadAPIKey(c.APIKeyFile)
	if errors.Is(err, fs.ErrNotExist) && c.OriginOf("api_key_file") == FromDefault {
		return "", nil
	}
	return key, err
}

// othersKeepOut reports whether only its owner may use a file.
func othersKeepOut(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 || runtime.GOOS == "windows" }

func notKeyFile(path string) error {
	return &Error{Message: fmt.Sprintf("read API key: %s is not a file", path),
		Hint: "api_key_file names the file that holds the key"}
}

// CheckAPIKey returns the key in a text that must hold nothing else. where names the text in the error, which is a
// *Error.
func CheckAPIKey(where, text string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", &Error{Message: where + " is empty", Hint: "write the server's key into it, on one line"}
	case len(text) > maxKeyFile || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", &Error{Message: where + " does not hold exactly one key",
			Hint: "write the server's key into it, on one line"}
	}
	return key, nil
}
