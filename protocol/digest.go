package protocol

import "slices"

// Digest proves what a server has of one transcript. The server computes it from the stored bytes for each request.
type Digest struct {
	SessionID string `json:"session_id"`
	Machine   string `json:"machine"`
	Epoch     string `json:"epoch,omitempty"`
	// Epochs are in answers for all epochs, newest first. Such answers have no Generations.
	Epochs      []EpochDigest `json:"epochs,omitzero"`
	Generations []ViewDigest  `json:"generations,omitzero"` // left out when single lines are asked for
	// LineHashes is sha256 over each line and its newline, null where nothing is stored.
	LineHashes []*string `json:"line_hashes,omitzero"`
}

// EpochDigest is the generations that one state file of the client has written.
type EpochDigest struct {
	Epoch       string       `json:"epoch"`
	Generations []ViewDigest `json:"generations"`
}

// ViewDigest proves one view: SHA256 covers each stored line and a newline, in order, and where they stand if not all
// are there (transcript.Layout). Lines that retention removed count as stored ones.
type ViewDigest struct {
	Generation int64          `json:"generation"`
	RewoundTo  int64          `json:"rewound_to"`
	Lines      int64          `json:"lines"`    // stored
	EndLine    int64          `json:"end_line"` // of the file
	Missing    int64          `json:"missing"`  // lines of the file that are not stored, oversize ones among them
	Bytes      int64          `json:"bytes"`    // stored, a newline counted for each line
	SHA256     string         `json:"sha256"`   // "" with lines that retention removed: the hash of each is known
	EOFNewline bool           `json:"eof_newline"`
	Oversize   []OversizeLine `json:"oversize"`
	Masked     []int64        `json:"masked,omitempty"`  // lines in which the server itself replaced secrets by tokens
	Retired    []RetiredLines `json:"retired,omitempty"` // lines that retention removed
}

// RetiredLines are lines that retention removed. Lines may be fewer than lie between First and Last.
type RetiredLines struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Lines int64  `json:"lines"`
	At    string `json:"at"`
}

// OversizeLine is a line that was longer than the client's cap: a server has only this of it.
type OversizeLine struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

// DigestRequest names transcripts. Epochs is "all" to ask for those of all epochs.
type DigestRequest struct {
	Sessions []DigestOf `json:"sessions"`
	Epochs   string     `json:"epochs,omitempty"`
}

// DigestOf names one transcript.
type DigestOf struct {
	SessionID string  `json:"session_id"`
	User      string  `json:"user,omitempty"`
	Machine   *string `json:"machine,omitempty"`
	Epoch     string  `json:"epoch,omitempty"`
}

// CountRetired counts the lines of which the server has only hashes.
func (v *ViewDigest) CountRetired() (n int64) {
	for _, r := range v.Retired {
		n += r.Lines
	}
	return n
}

// IsRetired reports whether the server may have only the hash of a line.
func (v *ViewDigest) IsRetired(line int64) bool {
	return slices.ContainsFunc(v.Retired, func(r RetiredLines) bool { return r.First <= line && line <= r.Last })
}

// MaskedLines returns the lines in which the server itself replaced secrets by tokens.
func (v *ViewDigest) MaskedLines() map[int64]bool {
	lines := make(map[int64]bool, len(v.Masked))
	for _, line := range v.Masked {
		lines[line] = true
	}
	return lines
}

// Of returns the digest of one generation.
func (d *Digest) Of(generation int64) (ViewDigest, bool) {
	i := slices.IndexFunc(d.Generations, func(v ViewDigest) bool { return v.Generation == generation })
	if i < 0 {
		return ViewDigest{}, false
	}
	return d.Generations[i], true
}

// Newest returns the digest of the view that the server shows by default.
func (d *Digest) Newest() (ViewDigest, bool) {
	if len(d.Generations) == 0 {
		return ViewDigest{}, false
	}
	return d.Generations[len(d.Generations)-1], true
}
