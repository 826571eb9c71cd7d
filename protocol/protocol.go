// Package protocol has the names of the HTTP headers, and of an error, that client and server share. It knows nothing
// of what they do with them: both declare their own wire types.
package protocol

// Headers of requests.
const (
	// Writer of a write names the daemon's incarnation, the last count of the server's ledger that it knows, and the id
	// of the store that it knows, which is left out before the first answer.
	Writer = "Ccship-Writer"
)

// Headers of answers to writes.
const (
	Version      = "Ccship-Protocol"      // versions of the extension that the server speaks
	Accept       = "Ccship-Accept"        // kinds of entries that it takes next to lines
	Ledger       = "Ccship-Ledger"        // the store's id, the count of the ledger after the request, and its token
	Server       = "Ccship-Server"        // the server's own version
	LinkRequests = "Ccship-Link-Requests" // 1: some wait to be fetched
)

// Store of every answer to a valid key is the store's id: reading from two databases in turn shows.
const Store = "Ccship-Store"

// Headers of answers that hold a file.
const (
	Generation      = "Ccship-Generation" // that is shown
	Lines           = "Ccship-Lines"      // in it
	Missing         = "Ccship-Missing"    // of these, how many are not stored
	DocumentVersion = "Ccship-Version"    // number of a document's version
)

// CodeOverQuota is the code of an answer 507: storing the request would exceed a limit of its user. It succeeds once
// something of the user is forgotten or the limit is raised.
const CodeOverQuota = "over_quota"
