// Package audit reads everything that a store holds: Run reports what does not fit together, ScanSecrets finds secrets
// by the rules that daemons mask with. Only Mask changes what is stored.
package audit
