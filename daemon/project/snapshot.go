package project

import (
	"encoding/json"
	"path/filepath"
)

// LastSent returns the number of the last line of a session that the hook sent, as recorded in
// .codetracker/cache/last_snapshot.json below the project dir; ok is false without such a record. The file has two
// shapes; the older one lists files only. The transcript may have been rewound since: a number at or beyond its end
// means that no line can count as sent. ccship never writes this file.
func LastSent(dir, sessionID string) (line int64, ok bool) {
	if dir == "" || sessionID == "" {
		return 0, false
	}
	text, err := readFile(filepath.Join(dir, folderName, "cache", "last_snapshot.json"), maxSnapshot)
	if err != nil {
		return 0, false
	}
	// Decode into a map: in the older shape file names stand next to "transcript" and must match exactly.
	var snapshot map[string]json.RawMessage
	if json.Unmarshal(text, &snapshot) != nil {
		return 0, false
	}
	var note struct {
		SessionID string `json:"session_id"`
		LastSent  *int64 `json:"last_sent_line"`
	}
	if json.Unmarshal(snapshot["transcript"], &note) != nil || note.LastSent == nil {
		return 0, false
	}
	if note.SessionID != sessionID || *note.LastSent < 0 {
		return 0, false
	}
	return *note.LastSent, true
}
