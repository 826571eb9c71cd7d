package daemon

import (
	"context"
	"fmt"
	"io"

	"github.com/ccship/ccship/daemon/control"
)

// Metrics writes the daemon's figures in Prometheus' text format.
func (d *Daemon) Metrics(w io.Writer) {
	s := d.Status(context.Background())
	metric := func(name, kind, help string, value any) {
		fmt.Fprintf(w, "# HELP ccship_%s %s\n# TYPE ccship_%s %s\nccship_%s %v\n", name, help, name, kind, name, value)
	}
	metric("files_tracked", "gauge", "Transcripts on disk.", s.Files.Tracked)
	metric("files_excluded", "gauge", "Transcripts whose project has opted out.", s.Files.Excluded)
	metric("files_vanished", "gauge", "Remembered transcripts that are no longer on disk.", s.Files.Vanished)
	metric("disk_bytes", "gauge", "Bytes of transcripts on disk.", s.Files.Bytes)
	metric("read_bytes", "gauge", "Of those, bytes behind the cursors.", s.Files.ReadBytes)
	metric("rewinds_total", "counter", "Rewinds found since start.", s.Files.Rewinds)
	metric("malformed_lines", "gauge", "Lines on disk that are no JSON.", s.Files.Malformed)
	metric("oversize_lines", "gauge", "Lines on disk that are longer than line_cap.", s.Files.Oversize)
	metric("masked_secrets_total", "counter", "Secrets masked in lines.", s.Files.Masked)
	metric("outbox_batches", "gauge", "Batches not acknowledged.", s.Outbox.Batches)
	metric("outbox_entries", "gauge", "Entries not acknowledged.", s.Outbox.Entries)
	metric("outbox_bytes", "gauge", "Their uncompressed bytes.", s.Outbox.Bytes)
	metric("outbox_stored_bytes", "gauge", "Compressed bytes in outbox and dead letters, as outbox_cap counts them.",
		s.Outbox.Stored)
	metric("dead_letters", "gauge", "Entries the server refuses for what they are.", s.Outbox.Dead)
	metric("withheld_entries", "gauge", "Entries a plain server did not get.", s.Outbox.Withheld)
	metric("sent_entries_total", "counter", "Entries acknowledged since start.", s.Sent.Entries)
	metric("sent_bytes_total", "counter", "Their uncompressed bytes.", s.Sent.Bytes)
	metric("requests_total", "counter", "Requests acknowledged since start.", s.Sent.Requests)
	metric("derived_lines_total", "counter", "Lines folded into what sessions mean since start.",
		d.derive.Stats().FoldedLines)
	metric("sessions_in_memory", "gauge", "Transcripts whose meaning is held in memory.", d.derive.Stats().Cached)
	metric("paused", "gauge", "Whether the user has paused sending.", map[bool]int{true: 1}[s.Pause != nil])
	metric("resident_bytes", "gauge", "Resident memory of the daemon.", s.Process.RSS)
	metric("cpu_seconds_total", "counter", "CPU time used by the daemon.", s.Process.CPUSeconds)
	metric("state_file_bytes", "gauge", "Size of the state file.", s.Process.StateFile)
	items, withheld, gone := int64(0), int64(0), int64(0)
	for _, srv := range s.Servers {
		items, withheld, gone = items+srv.Items, withheld+srv.Unwanted, gone+srv.Gone
	}
	metric("sent_items_total", "counter", "Checkpoints, document changes and files acknowledged since start.", items)
	metric("withheld_items_total", "counter", "Those withheld since start from servers that do not take them.", withheld)
	metric("gone_files_total", "counter", "Files that changed or went away before they were sent, since start.", gone)
	fmt.Fprint(w, "# HELP ccship_server_ok Whether a server accepts what is sent to it.\n# TYPE ccship_server_ok gauge\n")
	for url, ok := range serversOK(s.Servers) {
		fmt.Fprintf(w, "ccship_server_ok{server=%q} %d\n", url, ok)
	}
}

// serversOK is 1 for every address that accepts what is sent to it, whichever key opens it, else 0.
func serversOK(servers []control.Server) map[string]int {
	ok := map[string]int{}
	for _, srv := range servers {
		if before, seen := ok[srv.URL]; srv.State == "ok" && (!seen || before == 1) {
			ok[srv.URL] = 1
		} else {
			ok[srv.URL] = 0
		}
	}
	return ok
}
