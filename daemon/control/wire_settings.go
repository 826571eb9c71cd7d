package control

// ReloadResult is the answer of POST /v1/reload.
type ReloadResult struct {
	SchemaVersion int      `json:"schema_version"`
	Config        string   `json:"config"`            // the file that was read
	Changed       []string `json:"changed,omitempty"` // keys whose new value is in force
	Restart       []string `json:"restart,omitempty"` // keys whose new value needs a restart
}

// Excludes is the answer of GET /v1/exclude.
type Excludes struct {
	SchemaVersion int    `json:"schema_version"`
	Config        string `json:"config"` // the file to edit
	// Source of the patterns in force; default, file, environment, flag.
	Origin   string      `json:"origin"`
	Patterns []Exclusion `json:"patterns"`         // the patterns of exclude_projects
	Others   []Reason    `json:"others,omitempty"` // other reasons why transcripts are not delivered
}

// Exclusion is a pattern of folders whose transcripts are not delivered.
type Exclusion struct {
	Pattern     string `json:"pattern"`
	Transcripts int    `json:"transcripts"` // how many transcripts on disk are excluded by this now
}

// Reason is something else that keeps transcripts from being delivered.
type Reason struct {
	Why         string `json:"why"`
	Transcripts int    `json:"transcripts"` // how many transcripts on disk are excluded by this now
}

// RemaskRequest is the body of POST /v1/redact/apply.
type RemaskRequest struct {
	DryRun bool `json:"dry_run,omitempty"` // count only
	Offset int  `json:"offset,omitempty"`  // how many transcripts were done by earlier requests: their next
	// Old asks for the other half: nothing is sent again, and the answer is in RemaskResult.Old.
	Old bool `json:"old,omitempty"` // mask in place, or count, what servers have stored in the clear
}

// RemaskResult counts the lines, in some transcripts, that servers have in another form than the masking rules in force
// produce.
type RemaskResult struct {
	SchemaVersion int   `json:"schema_version"`
	Total         int   `json:"total"`          // transcripts on disk
	Next          int   `json:"next,omitempty"` // offset of the next request; 0: all are done
	Transcripts   int   `json:"transcripts"`    // transcripts with such lines
	Lines         int64 `json:"lines"`          // such lines
	Clear         int64 `json:"clear"`          // such lines that servers have with secrets in clear
	// Lines sent again: from the first of these in each transcript to its end.
	Resent int64 `json:"resent"`

	Old *OldBytes `json:"old,omitempty"` // what servers had stored in the clear; only with old
}

// OldBytes counts what servers have stored in the clear, in some transcripts of this machine.
type OldBytes struct {
	Total       int   `json:"total"`          // transcripts on servers
	Next        int   `json:"next,omitempty"` // offset of the next request; 0: all are done
	Transcripts int   `json:"transcripts"`    // transcripts with something to mask
	Lines       int64 `json:"lines"`          // stored lines to mask, in every generation
	Checkpoints int64 `json:"checkpoints"`    // checkpoints to mask
	Files       int64 `json:"files"`          // attachments and versions of documents to mask
	// Servers that speak only the base protocol: they cannot mask.
	Plain []string `json:"plain_servers,omitempty"`
}
