package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
)

// Reread reads the sources of c again. A missing file is an error and does not mean the defaults: editors remove files
// for a moment, and exclusions must not end then. An error is an *Error.
func (c Config) Reread() (Config, error) {
	if c.env == nil {
		return Config{}, &Error{Message: "this daemon's configuration cannot be read again", Hint: "restart it"}
	}
	if _, err := os.Stat(c.Path); errors.Is(err, fs.ErrNotExist) && c.hadFile {
		return Config{}, &Error{Message: c.Path + " is gone", Hint: "put it back; until then the last settings stay in force"}
	}
	next, err := c.With(nil)
	if err != nil {
		return Config{}, err
	}
	next.level, next.hadFile = c.level, next.hadFile || c.hadFile
	return next, nil
}

// Changes names the options that differ in next. restart lists those that a running daemon cannot change; next gets
// their values in force.
func (c *Config) Changes(next *Config) (changed, restart []string) {
	for _, o := range Options() {
		if reflect.DeepEqual(c.value(o.Name), next.value(o.Name)) {
			continue
		}
		if o.Live {
			changed = append(changed, o.Name)
			continue
		}
		restart = append(restart, o.Name)
		reflect.ValueOf(next.field(o.Name)).Elem().Set(reflect.ValueOf(c.field(o.Name)).Elem())
	}
	return changed, restart
}

// ApplyLogLevel sets LogLevel as the level of every TextLog that was made from c or from an earlier reading of it.
func (c *Config) ApplyLogLevel() {
	if c.level != nil {
		c.level.Set(c.LogLevel)
	}
}

// Stamp returns the Stamp of the configuration file, taken before it was read.
func (c *Config) Stamp() string { return c.stamp }

// Home returns the user's home folder; "" when c was made without Load.
func (c *Config) Home() string { return c.home }

// Stamp changes whenever the file does; it is "" when there is no file.
func Stamp(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.ModTime().UnixNano(), " ", st.Size())
}
