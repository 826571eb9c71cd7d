package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// parseSize reads a number of bytes above 0: plain, or with kB, MB, GB (powers of 1000), KiB, MiB, GiB (of 1024).
func parseSize(s string) (int64, error) {
	units := []struct {
		suffix string
		bytes  int64
	}{
		{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30},
		{"kb", 1000}, {"mb", 1000_000}, {"gb", 1000_000_000}, {"b", 1}, {"", 1},
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(strings.ToLower(s), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/u.bytes {
			break
		}
		return n * u.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size such as 128MiB", s)
}

// formatSize writes a number of bytes for people: 82 MB.
func formatSize(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }
