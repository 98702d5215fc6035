package userdata

import _ "embed" // attest.sh

// AttestSteps defines the shell function attest, by which a machine on AWS gets its join
// token from the leader (docs/attested-join.md).
//
//go:embed attest.sh
var AttestSteps string
