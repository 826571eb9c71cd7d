package auth

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxAccountName bounds names of users and keys, in bytes.
const maxAccountName = 100

// Me stands for the caller's own name where a request names a user. No account has it.
const Me = "@me"

// CheckAccountName returns what is wrong with a name for a user or a key.
func CheckAccountName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxAccountName:
		return fmt.Errorf("the name is longer than %d bytes", maxAccountName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name has control characters or is not UTF-8")
	case strings.TrimSpace(name) != name:
		return errors.New("the name begins or ends with a space")
	case name == Me:
		return errors.New("the name " + Me + " means the caller")
	}
	return nil
}

// MaxGrace is the longest time that a rotated key may keep working: what a thief may choose, too.
const MaxGrace = 72 * time.Hour

// ParseGrace reads how long a rotated key keeps working: a Go duration, "" for not at all.
func ParseGrace(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > MaxGrace {
		return 0, fmt.Errorf("grace %q is not a duration from 0s to %v, such as 24h", s, MaxGrace)
	}
	return d, nil
}
