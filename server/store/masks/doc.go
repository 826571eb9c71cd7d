// Package masks replaces secrets in stored bytes by tokens, in the same way in both databases. It changes nothing that
// is not a token, knows no driver, and does not know how secrets are found.
package masks
