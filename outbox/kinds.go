package outbox

import (
	"bytes"
	"encoding/json"
)

// Kind says what a batch holds.
type Kind uint8

const (
	Objects     Kind = iota // JSON objects: any server accepts them
	Opaque                  // lines that are no JSON object, and oversize notes: only for servers that speak the extension
	Marker                  // no entries: a rewind or a final newline, only for servers that speak the extension
	Checkpoints             // no lines: checkpoints, only for servers that announce "checkpoints"
	Documents               // no lines: events of linked documents, only for servers that announce "documents"
	Blob                    // no lines: a document version or an attachment, only for servers that announce "blobs"
)

// artifact reports whether the kind holds no lines of the transcript.
func (k Kind) artifact() bool { return k >= Checkpoints }

// joins reports whether batches of both kinds may share a request.
func (k Kind) joins(other Kind) bool { return k == other || !k.artifact() && !other.artifact() }

// Kinds is a set of artifact kinds.
type Kinds uint8

// Has reports whether the set has a kind.
func (s Kinds) Has(k Kind) bool { return k.artifact() && s&(1<<(k-Checkpoints)) != 0 }

// With returns the set with a kind added.
func (s Kinds) With(k Kind) Kinds { return s | 1<<(k-Checkpoints) }

// Names lists the set's kinds as servers announce them, in order. It is never nil.
func (s Kinds) Names() []string {
	names := []string{}
	for _, k := range artifactKinds() {
		if s.Has(k) {
			names = append(names, k.announced())
		}
	}
	return names
}

func artifactKinds() []Kind { return []Kind{Checkpoints, Documents, Blob} }

// announced returns the kind's name in Ccship-Accept.
func (k Kind) announced() string {
	if k == Blob {
		return "blobs"
	}
	return k.String()
}

// String returns the kind's name, as listings show it.
func (k Kind) String() string {
	switch k {
	case Checkpoints:
		return "checkpoints"
	case Documents:
		return "documents"
	case Blob:
		return "blob"
	}
	return "lines"
}

// BlobRef identifies the file of a Blob.
type BlobRef struct {
	SHA256 string // of the whole content, lower-case hex
	Name   string // path below the session's folder, slashes
	Media  string // media type
	Size   int64  // bytes
	// Where the content is read unless the queue holds it: Path, with slashes, below Root. Links out of Root are refused.
	Root, Path string
}

// BlobInRow is the limit in bytes up to which the queue holds a blob's content. A larger file is read when it is sent.
const BlobInRow = 1 << 20

// Checkpoints returns a batch of checkpoints, JSON objects as the server gets them. The caller owns it.
func (p *Packer) Checkpoints(items []json.RawMessage) Batch { return p.items(Checkpoints, items) }

// Documents returns a batch of document events, JSON objects as the server gets them. The caller owns it.
func (p *Packer) Documents(events []json.RawMessage) Batch { return p.items(Documents, events) }

func (p *Packer) items(kind Kind, items []json.RawMessage) Batch {
	var raw []byte
	for i, item := range items {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, bytes.TrimSpace(item)...)
	}
	return Batch{Kind: kind, Items: len(items), Raw: int64(len(raw)), Frame: p.Pack(nil, raw)}
}

// Blob returns a batch of one file, which the caller owns. With nil content the file is read when it is sent.
func (p *Packer) Blob(ref BlobRef, content []byte) Batch {
	b := Batch{Kind: Blob, Items: 1, Blob: ref}
	if content != nil {
		b.Raw, b.Frame = int64(len(content)), p.Pack(nil, content)
	}
	return b
}
