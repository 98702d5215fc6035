// Package cloudinit asks cloud-init itself, from Debian's package, about each input of userdata
// lint: its own code takes the user data apart, renders, merges and decodes it, writes its files
// and makes its scripts (judge.py). What it refuses or ignores userdata lint must tell, and what
// it takes userdata lint must not call refused. Nothing of an input is run.
package cloudinit
