package rules

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/hex"
	"fmt"
	"math/big"
)

// This file tells strong keys from weak ones. It is as pure as decide.go.

const (
	// minRSAExponent is the least that FIPS 186-5 (section A.1.1) allows and that the CA/Browser Forum's baseline
	// requirements (section 6.1.6) ask for.
	minRSAExponent = 1<<16 + 1
	// leastFactor is the bound of the baseline requirements for the factors of a modulus.
	leastFactor = 752
)

func keyKind(key any) (kind string, bits int) {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return "RSA", k.N.BitLen()
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name, k.Curve.Params().BitSize
	case ed25519.PublicKey:
		return "Ed25519", len(k) * 8
	}
	return fmt.Sprintf("%T", key), 0
}

// weakness says why anybody may sign for a key of a strong kind; empty: it is not known that
// somebody may. crypto/x509 refuses points of the NIST curves that are not on them, and their identity.
func weakness(key any) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return rsaWeakness(k)
	case ed25519.PublicKey:
		if smallOrder(k) {
			return "it is a point of small order: signatures of it need no secret"
		}
	}
	return ""
}

func rsaWeakness(k *rsa.PublicKey) string {
	if k.E < minRSAExponent || k.E%2 == 0 {
		return fmt.Sprintf("its public exponent is %d, not an odd number of at least %d", k.E, minRSAExponent)
	}
	var rest big.Int
	for p := int64(2); p < leastFactor; p++ {
		if rest.Mod(k.N, big.NewInt(p)).Sign() == 0 {
			return fmt.Sprintf("its modulus is divided by %d", p)
		}
	}
	return ""
}

// smallOrderPoints are the y coordinates, little endian, of all points of Curve25519 whose order divides 8, and the two
// of them that have a second encoding (p and p+1). RFC 8032, section 5.1.
var smallOrderPoints = []string{
	"0000000000000000000000000000000000000000000000000000000000000000", // order 4
	"0100000000000000000000000000000000000000000000000000000000000000", // the identity
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p-1, order 2
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p is 0
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p+1 is 1
}

func smallOrder(k ed25519.PublicKey) bool {
	y := append([]byte(nil), k...)
	y[len(y)-1] &= 0x7f // the sign of x
	text := hex.EncodeToString(y)
	for _, p := range smallOrderPoints {
		if p == text {
			return true
		}
	}
	return false
}
