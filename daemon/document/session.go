package document

import (
	"cmp"
	"time"

	"github.com/ccship/ccship/state/projection"
)

// sessionDocuments holds a session's documents, including unlinked ones.
type sessionDocuments struct {
	documents map[string]trackedDocument // by path
	active    time.Time                  // when something last happened in the session
	due       time.Time                  // when the documents are checked next
	cost      time.Duration              // of a check that finds nothing
	requested bool                       // the state has requests of the session's Claude
	retry     bool                       // a request failed; it is tried again when due
	edits     []edit                     // of files that may be documents
}

// edit is a change of a file by one of Claude's tools.
type edit struct {
	path string
	line int64
}

// urgent reports whether a request or an edit waits.
func (s *sessionDocuments) urgent() bool { return s.requested || len(s.edits) > 0 }

// needsChecks reports whether the session has anything to check or to send.
func (s *sessionDocuments) needsChecks() bool {
	for _, d := range s.documents {
		if d.Linked || d.Dest == "" {
			return true
		}
	}
	return s.retry
}

// unsent reports whether a change is not queued for any server yet.
func (s *sessionDocuments) unsent() bool {
	for _, d := range s.documents {
		if d.Dest == "" {
			return true
		}
	}
	return false
}

// trackedDocument is a document, and what is known of its file beyond the last version.
type trackedDocument struct {
	projection.Document
	newStamp      projection.Stamp // at the previous check, if it is not the version's
	changingSince time.Time        // when the file was first seen to differ from the version
	missing       bool             // it did not exist at the previous check
	unproven      bool             // its bytes may have changed although the stamp has not
	problem       string           // why it cannot be read or sent now
	failures      int              // how often its newest version could not be sent
	placed        bool             // this daemon has seen that the working directory is the one it was linked in
}

// compare orders documents by when they were linked.
func (d *trackedDocument) compare(other *trackedDocument) int {
	return cmp.Or(cmp.Compare(d.AddedAt, other.AddedAt), cmp.Compare(d.Path, other.Path))
}

// newVersion makes a content the next version.
func (d *trackedDocument) newVersion(c *content, by string) {
	d.Version++
	d.ChangedAt, d.By = time.Now().UnixMilli(), by
	d.Size, d.SHA256, d.TooLarge, d.Deleted = c.Size, c.SHA256, c.TooLarge, false
	d.setStamp(c)
}

// setStamp notes which state of the file the version was read from.
func (d *trackedDocument) setStamp(c *content) {
	d.Stat, d.unproven = c.Stamp, c.Torn || !settled(c.Stamp, time.Now())
	d.newStamp, d.changingSince, d.missing, d.problem = projection.Stamp{}, time.Time{}, false, ""
}

// elsewhere reports whether the working directory is not the folder in which the document was linked. The folder's
// device may have another number after a restart.
func (d *trackedDocument) elsewhere(now projection.Folder) bool {
	if now.Inode == 0 || d.Folder.Inode != 0 && (d.Folder.Inode != now.Inode || d.placed &&
		d.Folder.Device != now.Device) {
		return now.Inode != 0
	}
	d.Folder, d.placed = now, true
	return false
}
