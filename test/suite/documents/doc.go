// Package documents judges published documents with the programs of others: the JSON schema
// of groups.yaml with a validator.
//
// It refuses to start anything.
package documents
