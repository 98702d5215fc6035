// Package provider holds the runs of the provider suite over the wire, against
// emulated clouds. It has tests only, and refuses to know how a provider works.
package provider
