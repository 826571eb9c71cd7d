package outbox

import "time"

// limitHolds is how long a limit learned from a 413 is believed before it is doubled.
const limitHolds = 24 * time.Hour

// knowledge is what is known of the server: Learned, and what holds for this run only. Owned by the loop.
type knowledge struct {
	Learned
	plain        bool // configured: never the extension
	noCoding     bool // it answered 415 to a compressed body
	proven       bool // it took entries since the configuration last changed
	refusedInRow int  // entries refused alone, one after the other, none taken in between
	itemsRefused int  // the same for what lies beside lines
	barred       Kinds
	barredAt     time.Time // when it last answered that there is nothing at the address of a kind that it announces
}

// unknown says that what the server can do is not known: only what any server takes may go.
func (k *knowledge) unknown() bool { return !k.plain && !k.Took && !k.Extension }

// withholds says that the server gets JSON objects only, and nothing else ever.
func (k *knowledge) withholds() bool { return k.plain || k.Took && !k.Extension }

// sends says whether rows of a kind go to the server; others are withheld. Only asked when its abilities are known.
func (k *knowledge) sends(kind Kind) bool {
	if kind.beside() {
		return !k.withholds() && k.Accepts.Has(kind)
	}
	return kind == Objects || !k.withholds()
}

// bar stops believing that the server takes a kind, whatever it announces, for as long as a limit is believed.
func (k *knowledge) bar(kind Kind, now time.Time) {
	k.barred, k.barredAt = k.barred.With(kind), now
	k.Accepts &^= k.barred
	k.itemsRefused = 0
}

// bare says that requests go without the extension.
func (k *knowledge) bare() bool { return k.plain || k.Plain }

func (k *knowledge) protocol() string {
	switch {
	case k.withholds():
		return "plain"
	case k.Extension:
		return "ccship"
	}
	return "unknown"
}

// encoding is how the next request is sent.
func (k *knowledge) encoding() encoding {
	switch {
	case k.plain || k.noCoding || !k.Extension:
		return identity
	case k.Zstd:
		return zstdCoding
	case k.Gzip:
		return gzipCoding
	}
	return identity
}

// hear takes in what a server said of itself when it took entries (or, with probe, when it was only asked). It
// reports whether a server that had taken entries as a plain one now speaks the extension.
func (k *knowledge) hear(a announcement, entries int64, probe bool) (announced bool) {
	if k.plain {
		k.Took = k.Took || entries > 0
		return false
	}
	announced = a.extension && k.Took && !k.Extension
	k.Extension, k.Zstd, k.Gzip, k.Accepts = a.extension, a.zstd, a.gzip, a.accepts&^k.barred
	if a.extension {
		k.Plain = false
	}
	k.Took = k.Took || !probe && entries > 0
	return announced
}

// shrink lowers the limit after a 413 to a request of raw bytes.
func (k *knowledge) shrink(raw int64, now time.Time) {
	half := max(raw/2, 1)
	if k.MaxRaw == 0 || half < k.MaxRaw {
		k.MaxRaw = half
	}
	k.MaxRawAt = now.Unix()
}

// age doubles a limit that is a day old, and forgets one that no longer limits. It reports whether it did.
func (k *knowledge) age(now time.Time) bool {
	if k.barred != 0 && now.Sub(k.barredAt) >= limitHolds {
		k.barred = 0
	}
	if k.MaxRaw == 0 || now.Sub(time.Unix(k.MaxRawAt, 0)) < limitHolds {
		return false
	}
	k.MaxRaw, k.MaxRawAt = k.MaxRaw*2, now.Unix()
	if k.MaxRaw >= maxRaw {
		k.MaxRaw, k.MaxRawAt = 0, 0
	}
	return true
}

// rawLimit is how many uncompressed bytes the next request may have.
func (k *knowledge) rawLimit() int64 {
	if k.MaxRaw > 0 {
		return min(k.MaxRaw, maxRaw)
	}
	return maxRaw
}
