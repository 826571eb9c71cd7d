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
}

// unknown says that what the server can do is not known: only what any server takes may go.
func (k *knowledge) unknown() bool { return !k.plain && !k.Took && !k.Extension }

// withholds says that the server gets JSON objects only, and nothing else ever.
func (k *knowledge) withholds() bool { return k.plain || k.Took && !k.Extension }

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
	k.Extension, k.Zstd, k.Gzip = a.extension, a.zstd, a.gzip
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
