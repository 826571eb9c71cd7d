package protocol

import (
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/ccship/ccship/transcript/redact"
)

// Found is one page of sessions that a search found, the best first. S is a session as the server answers it, or as a
// client reads it.
type Found[S any] struct {
	Sessions []FoundSession[S] `json:"sessions"`
	Total    int64             `json:"total"`
	Missing  []string          `json:"missing"`    // words that the best session lacks, when no session has all
	Notes    []string          `json:"notes"`      // what of the query was not understood
	Facets   *Facets           `json:"facets"`     // null unless asked for
	Next     *string           `json:"next"`       // null on the last page
	More     bool              `json:"incomplete"` // it was to become too much work: there may be further sessions
}

// FoundSession is a session that a search found, and the best of its lines.
type FoundSession[S any] struct {
	Session S        `json:"session"`
	Title   string   `json:"title"`
	Prompt  string   `json:"first_prompt"`
	Branch  string   `json:"branch"`
	Gone    *string  `json:"gone_session_id"` // not stored; a folder where the prompt history names no session
	Missing []string `json:"missing"`         // words that it lacks
	Hits    []Hit    `json:"hits"`
}

// Hit is a line that a search found.
type Hit struct {
	SessionID  string     `json:"session_id"` // an agent's, perhaps
	Generation int64      `json:"generation"`
	Line       int64      `json:"line_index"`
	Time       *time.Time `json:"time"`
	Kind       string     `json:"kind"` // as server.TextKinds and server.PlaceKinds name it
	Snippet    []Piece    `json:"snippet"`
	Current    bool       `json:"current"` // the newest view shows it
	URL        string     `json:"url"`
}

// Piece is a part of a snippet. Match says that it is what was searched for.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match"`
}

// Tokens is what answers used, each answer counted once.
type Tokens struct {
	Answers      int64 `json:"answers"`
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	CacheRead    int64 `json:"cache_read_tokens"`
	CacheWrite5m int64 `json:"cache_write_5m_tokens"`
	CacheWrite1h int64 `json:"cache_write_1h_tokens"`
	Searches     int64 `json:"web_searches"` // of the web, which cost extra; no tokens
}

// All returns the number of tokens of every kind.
func (t Tokens) All() int64 {
	return t.Input + t.Output + t.CacheRead + t.CacheWrite5m + t.CacheWrite1h
}

// Add returns the sum of both.
func (t Tokens) Add(o Tokens) Tokens {
	return Tokens{
		Answers: t.Answers + o.Answers, Input: t.Input + o.Input, Output: t.Output + o.Output,
		CacheRead: t.CacheRead + o.CacheRead, CacheWrite5m: t.CacheWrite5m + o.CacheWrite5m,
		CacheWrite1h: t.CacheWrite1h + o.CacheWrite1h, Searches: t.Searches + o.Searches,
	}
}

// ShareLink is an address that shows one session to anyone with it.
type ShareLink struct {
	ID        int64     `json:"id"`
	URL       string    `json:"url,omitempty"` // only when it is made
	SessionID string    `json:"session_id"`
	Title     string    `json:"title"`
	By        string    `json:"by"` // user
	Created   time.Time `json:"created"`
	Until     time.Time `json:"until"`
}

// LinkRequest asks a machine's daemon to link a document to a session, or to unlink it.
type LinkRequest struct {
	ID        string `json:"id"`
	SessionID string `json:"session_id"`
	Path      string `json:"path"` // as the person typed it
	Link      bool   `json:"link"` // false: unlink
}

// CopyRequest asks for the first lines of a transcript in the name of another machine of the same user.
type CopyRequest struct {
	From  string `json:"from_machine"`
	To    string `json:"to_machine"`
	Host  string `json:"host"`
	Epoch string `json:"epoch"` // of generation 0 of the copy
	Lines int64  `json:"lines"`
}

// CommitShare counts the lines of a commit that a session wrote.
type CommitShare struct {
	Commit string    `json:"commit"` // its hash
	At     time.Time `json:"at"`     // of the commit
	Added  int64     `json:"added"`  // lines of the commit that are not blank
	Lines  int64     `json:"lines"`  // of them, the session's
}

// SessionCopy is another transcript of a session, which has nothing that the session has not.
type SessionCopy struct {
	SessionID string `json:"session_id"`
	Machine   string `json:"machine"`
}

// Facets count the found sessions of each project, kind of text and month, the most first; months from the newest on.
type Facets struct {
	Projects []Count `json:"projects"`
	Kinds    []Count `json:"kinds"`
	Months   []Count `json:"months"` // Value is 2026-11
}

// Untitled is the name of a session in which nothing was said.
const Untitled = "Untitled session"

// Count is a value that a query can be narrowed to, and how many of the found sessions have it.
type Count struct {
	Value string `json:"value"`
	Count int64  `json:"count"`
	Name  string `json:"-"` // of a project, on the server
}

// WriteLedger counts the writes of one machine that a server has accepted.
type WriteLedger struct {
	Store   string          `json:"store"` // id of the database
	Count   int64           `json:"count"`
	Token   string          `json:"token"`       // of the last write; "": the server draws none
	Since   string          `json:"since_token"` // of the write with the count asked for; "": not known any more
	Writer  string          `json:"writer"`      // incarnation of the last write; "" when none was named
	Changed []ChangedStream `json:"changed"`     // after the requested count, at most MaxChanged
}

// ChangedStream is a transcript, and the count of the ledger at its last write.
type ChangedStream struct {
	SessionID string `json:"session_id"`
	Count     int64  `json:"count"`
}

// MaxChanged is the largest number of changed transcripts in one answer.
const MaxChanged = 1000

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

// MaskRequest names secrets of one transcript of the caller's own, and the tokens that replace them.
type MaskRequest struct {
	Machine     string           `json:"machine"`
	Epoch       string           `json:"epoch,omitempty"` // of the lines
	Lines       []LineMask       `json:"lines,omitempty"`
	Checkpoints []CheckpointMask `json:"checkpoints,omitempty"`
	Files       []FileMask       `json:"files,omitempty"` // attachments and versions of documents
}

// LineMask has the tokens of one line. Bytes that others replaced since count too.
type LineMask struct {
	Epoch      int64          `json:"-"` // its ID on the server
	Generation int64          `json:"generation"`
	Line       int64          `json:"line"`
	SHA256     Hash           `json:"sha256"` // of the stored bytes, without a newline
	Tokens     []redact.Token `json:"tokens"` // ascending
}

// CheckpointMask has the tokens of one text of a checkpoint.
type CheckpointMask struct {
	ID     string         `json:"id"`
	SHA256 Hash           `json:"sha256"` // of the text: the summary, the port id or the path of an active file
	Tokens []redact.Token `json:"tokens"` // ascending
}

// FileMask has the tokens of a file's content. Its address changes with it, wherever its user's sessions refer to it.
type FileMask struct {
	SHA256 Hash           `json:"sha256"`
	Tokens []redact.Token `json:"tokens"` // ascending
}

// Masked counts what a masking changed.
type Masked struct {
	Lines       int64 `json:"lines"`
	Checkpoints int64 `json:"checkpoints"`
	Files       int64 `json:"files"`
}

// Any reports whether something changed.
func (m Masked) Any() bool { return m != Masked{} }

// Hash is a sha256. Its text is hexadecimal digits in lower case.
type Hash [32]byte

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*n {
		return errors.New("not a sha256 of 64 hexadecimal digits")
	}
	return nil
}
