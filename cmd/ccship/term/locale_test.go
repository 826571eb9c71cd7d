package term

import (
	"strings"
	"testing"

	"github.com/ccship/ccship/e2e/kit"
)

func TestUTF8(t *testing.T) {
	for locale, want := range map[string]bool{"LANG=C.UTF-8": true, "LANG=en_GB.utf8": true, "LANG=C": false, "": false, "LC_ALL=C LANG=C.UTF-8": false, "LC_CTYPE=UTF-8 LANG=C": true} {
		env := map[string]string{}
		for _, v := range strings.Fields(locale) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		kit.Equal(t, locale, UTF8(func(name string) (string, bool) { v, ok := env[name]; return v, ok }), want)
	}
}
