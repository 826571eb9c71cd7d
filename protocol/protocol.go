// Package protocol is what client and server share: names of headers and errors, the ledger of writes that both keep,
// and how each proves to the other that it knows a key and where it runs. It knows nothing of what they do with them.
package protocol

// Headers of requests.
const (
	// Writer of a write names the daemon's incarnation, the last count of the server's ledger that it knows, and the id
	// of the store that it knows, which is left out before the first answer.
	HeaderWriter = "Ccship-Writer"
)

// Headers of answers to writes.
const (
	HeaderVersion      = "Ccship-Protocol"      // versions of the extension that the server speaks
	HeaderAccept       = "Ccship-Accept"        // kinds of entries that it takes next to lines
	HeaderLedger       = "Ccship-Ledger"        // the store's id, the count of the ledger after the request, and its token
	HeaderServer       = "Ccship-Server"        // the server's own version
	HeaderLinkRequests = "Ccship-Link-Requests" // 1: some wait to be fetched
)

// Store of every answer to a valid key is the store's id: reading from two databases in turn shows.
const HeaderStore = "Ccship-Store"

// Headers of answers that hold a file.
const (
	HeaderGeneration      = "Ccship-Generation" // that is shown
	HeaderLines           = "Ccship-Lines"      // in it
	HeaderMissing         = "Ccship-Missing"    // of these, how many are not stored
	HeaderDocumentVersion = "Ccship-Version"    // number of a document's version
)

// CodeOverQuota is the code of an answer 507: storing the request would exceed a limit of its user. It succeeds once
// something of the user is forgotten or the limit is raised.
const CodeOverQuota = "over_quota"
