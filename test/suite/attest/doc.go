// Package attest tries the attested join: machines of an emulated AWS, whose STS verifies
// signatures, ask a real listener for their tokens, honestly and not.
package attest
