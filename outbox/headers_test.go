package outbox

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ccship/ccship/e2e/kit"
)

func TestRetryAfterOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0}, {"7", "", 7 * time.Second}, {" 7 ", "", 7 * time.Second}, {"-7", "", 0}, {"soon", "", 0},
		{"599", "", 599 * time.Second}, {"601", "", 10 * time.Minute}, {"9223372036854775807", "", 10 * time.Minute},
		{date(time.Minute), "", time.Minute}, {date(-time.Minute), "", 0}, {date(time.Hour), "", 10 * time.Minute},
		{date(time.Hour), date(time.Hour - time.Minute), time.Minute}, // a server an hour ahead
		{date(-time.Hour), date(-time.Hour - time.Minute), time.Minute},
		{date(time.Minute), "yesterday", time.Minute},
	}
	for _, test := range tests {
		h := http.Header{"Retry-After": {test.after}, "Date": {test.date}}
		kit.Equal(t, fmt.Sprintf("Retry-After %q, Date %q", test.after, test.date), retryAfter(h, now), test.want)
	}
}

func TestAnnouncementOf(t *testing.T) {
	tests := []struct {
		protocol, codings string
		want              announcement
	}{
		{"1", "zstd, gzip", announcement{extension: true, zstd: true}},
		{"2, 1", "GZIP;q=0.5,zstd;q=0", announcement{extension: true}},
		{"1", "", announcement{extension: true}},
		{"2", "zstd", announcement{}},
		{"", "gzip", announcement{}}, // any server may say that of itself
	}
	for _, test := range tests {
		h := http.Header{"Ccship-Protocol": {test.protocol}, "Accept-Encoding": {test.codings}}
		kit.Equal(t, fmt.Sprintf("%q, %q", test.protocol, test.codings), announcementOf(h), test.want)
	}
}
