package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// described matches the output of git describe: a version, then optionally a pre-release, the number of commits since
// that tag with the commit's hash, and a mark that the working tree has uncommitted changes.
var described = regexp.MustCompile(
	`^v?(\d+\.\d+\.\d+)(?:-((?:alpha|beta|rc|pre)[0-9A-Za-z.]*))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// packageVersion spells a version so that dpkg and rpm order it: a pre-release comes before its release, a later commit
// after it. Text that is not a version comes before all versions.
func packageVersion(version string) string {
	m := described.FindStringSubmatch(version)
	if m == nil {
		return "0.0.0~" + regexp.MustCompile(`[^0-9A-Za-z.]+`).ReplaceAllString(version, ".")
	}
	v := m[1]
	if m[2] != "" {
		v += "~" + m[2]
	}
	if m[3] != "" {
		v += "+" + m[3] + "." + m[4]
	}
	if m[5] != "" {
		v += "+dirty"
	}
	return v
}

// epoch returns the time that everything in the release carries: SOURCE_DATE_EPOCH, else the commit's.
func epoch(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("ask git for the commit's time (SOURCE_DATE_EPOCH can name one): %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, want seconds since 1970: %w", text, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
