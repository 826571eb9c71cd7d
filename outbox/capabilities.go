package outbox

import (
	"time"

	"github.com/ccship/ccship/protocol"
)

// limitLifetime is how long a limit learned from a 413 holds before it is doubled.
const limitLifetime = 24 * time.Hour

// capabilities is what is known about the server: Learned, and what holds for this run only. Owned by the loop.
type capabilities struct {
	Learned
	receipts     protocol.Receipts // since the start, or the last comparison
	plain        bool              // configured: never use the extension
	noCoding     bool              // it answered 415 to a compressed body
	proven       bool              // it accepted entries since the configuration last changed
	refusedInRow int               // consecutive entries refused alone, none accepted in between
	tookItem     [Blob + 1]int64   // the largest artifact of each kind that it accepted, in bytes
	disabled     Kinds
	disabledAt   time.Time // when it last refused a kind that it announces
}

// unknown: capabilities are not known; send only what every server accepts.
func (k *capabilities) unknown() bool { return !k.plain && !k.Took && !k.Extension }

// withholds: the server is plain and gets only JSON objects.
func (k *capabilities) withholds() bool { return k.plain || k.Took && !k.Extension }

// spoke reports whether the server has announced the extension since the configuration last changed.
func (k *capabilities) spoke() bool { return k.Extension && k.proven && !k.plain }

// sends reports whether batches of a kind go to the server; others are withheld. Call it only when these are known.
func (k *capabilities) sends(kind Kind) bool {
	if kind.artifact() {
		return !k.withholds() && k.Accepts.Has(kind)
	}
	return kind == Objects || !k.withholds()
}

// disable ignores the server's announcement of a kind for limitLifetime.
func (k *capabilities) disable(kind Kind, now time.Time) {
	k.disabled, k.disabledAt = k.disabled.With(kind), now
	k.Accepts &^= k.disabled
}

// bare: send requests without the extension. Only a server that announced it gets what the base protocol does not name:
// the machine's name, paths, headers.
func (k *capabilities) bare() bool { return k.plain || !k.Extension }

func (k *capabilities) protocol() string {
	switch {
	case k.withholds():
		return "plain"
	case k.Extension:
		return "ccship"
	}
	return "unknown"
}

// compresses reports whether the next request is compressed.
func (k *capabilities) compresses() bool { return !k.plain && !k.noCoding && k.Extension && k.Zstd }

// learn applies what a server announced when it accepted entries, or with probe when it was only asked. It reports
// whether a server that had accepted entries as a plain one now speaks the extension.
func (k *capabilities) learn(a announcement, entries int64, probe bool) (announced bool) {
	if k.plain {
		k.Took = k.Took || entries > 0
		return false
	}
	announced = a.extension && k.Took && !k.Extension
	k.Extension, k.Zstd, k.Accepts = a.extension, a.zstd, a.accepts&^k.disabled
	k.Took = k.Took || !probe && entries > 0
	return announced
}

// shrink lowers the limit after a 413 to a request of raw bytes.
func (k *capabilities) shrink(raw int64, now time.Time) {
	half := max(raw/2, 1)
	if k.MaxRaw == 0 || half < k.MaxRaw {
		k.MaxRaw = half
	}
	k.MaxRawAt = now.Unix()
}

// tookAsLarge reports whether the server accepted a request at least as large before.
func (k *capabilities) tookAsLarge(r *request) bool {
	if kind := r.kind(); kind.artifact() {
		return r.itemSize() <= k.tookItem[kind]
	}
	return r.raw() <= k.TookRaw && r.wire <= k.TookWire
}

// expire doubles a limit that is older than limitLifetime and removes one without effect. It reports whether it did.
func (k *capabilities) expire(now time.Time) bool {
	if k.disabled != 0 && now.Sub(k.disabledAt) >= limitLifetime {
		k.disabled = 0
	}
	if k.MaxRaw == 0 || now.Sub(time.Unix(k.MaxRawAt, 0)).Abs() < limitLifetime {
		return false
	}
	k.MaxRaw, k.MaxRawAt = k.MaxRaw*2, now.Unix()
	if k.MaxRaw >= maxRaw {
		k.MaxRaw, k.MaxRawAt = 0, 0
	}
	return true
}

// rawLimit returns the limit of uncompressed bytes in the next request.
func (k *capabilities) rawLimit() int64 {
	if k.MaxRaw > 0 {
		return min(k.MaxRaw, maxRaw)
	}
	return maxRaw
}
