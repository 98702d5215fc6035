package rules

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/hex"
	"fmt"
	"math/big"
	"sync"
)

// This file tells strong keys from weak ones. It is as pure as decide.go.

const (
	// minRSAExponent is the least that FIPS 186-5 (section A.1.1) allows and that the CA/Browser Forum's baseline
	// requirements (section 6.1.6) ask for.
	minRSAExponent = 1<<16 + 1
	// leastFactor is the bound of the baseline requirements for the factors of a modulus.
	leastFactor = 752
	// fermatRounds is how often they ask for Fermat's factorization to be tried (section 6.1.1.3).
	fermatRounds = 100
	// rocaPrimes is the largest prime by which keys of CVE-2017-15361 are told.
	rocaPrimes = 167
	// A secret of ECDSA that is less than smallSecrets, on either side of 0, is found by counting.
	smallSecrets, nearSecrets = 1 << 16, 1 << 9
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
	case *ecdsa.PublicKey:
		if smallSecret(k) {
			return fmt.Sprintf("its secret is less than %d", smallSecrets)
		}
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
	switch {
	case roca(k.N):
		return "it was made as keys of CVE-2017-15361 (ROCA) were, whose secret follows from them"
	case closePrimes(k.N):
		return "its modulus is a square, or of two primes that are close to each other"
	case fermatFactor(k.N):
		return "its modulus is a prime, a power of one, or has a factor that divides 2 to its power less 2"
	}
	return ""
}

// fermatFactor tells whether a prime p divides n and 2^n-2. It does where n is p or a power of it, and where p-1
// divides n-1, as with the primes p and 2p-1; of any other n the chance is that of guessing p.
func fermatFactor(n *big.Int) bool {
	two := big.NewInt(2)
	rest := new(big.Int).Exp(two, n, n)
	return rest.GCD(nil, nil, rest.Sub(rest, two).Mod(rest, n), n).BitLen() > 1
}

// closePrimes is Fermat's factorization: n is the square of a mean less the square of half a difference.
func closePrimes(n *big.Int) bool {
	mean, square, half := new(big.Int).Sqrt(n), new(big.Int), new(big.Int)
	for range fermatRounds {
		if square.Sub(square.Mul(mean, mean), n).Sign() >= 0 && half.Mul(half.Sqrt(square), half).Cmp(square) == 0 {
			return true
		}
		mean.Add(mean, big.NewInt(1))
	}
	return false
}

// roca tells a modulus that is a power of 65537 modulo each small prime (Nemec, Sys, Svenda, Klinec and Matyas, CCS 2017): one in
// 10^8 others is.
func roca(n *big.Int) bool {
	for p := int64(3); p <= rocaPrimes; p++ {
		if !big.NewInt(p).ProbablyPrime(0) {
			continue
		}
		rest, of := new(big.Int).Mod(n, big.NewInt(p)).Int64(), int64(1)
		for of != rest {
			if of = of * (minRSAExponent % p) % p; of == 1 {
				return false
			}
		}
	}
	return true
}

// curve is what counting takes of one.
type curve interface {
	Add(x1, y1, x2, y2 *big.Int) (x, y *big.Int)
	ScalarBaseMult(k []byte) (x, y *big.Int)
}

// near are the x coordinates of the first multiples of a curve's generator, and that of the point at infinity.
var near = map[elliptic.Curve]func() map[string]bool{elliptic.P256(): nearOf(elliptic.P256()), elliptic.P384(): nearOf(elliptic.P384()), elliptic.P521(): nearOf(elliptic.P521())}

func nearOf(c curve) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		out := map[string]bool{"0": true}
		for k := int64(1); k <= nearSecrets; k++ {
			x, _ := c.ScalarBaseMult(big.NewInt(k).Bytes())
			out[x.String()] = true
		}
		return out
	})
}

// smallSecret goes from the point in both directions, with steps as long as the multiples in near reach.
func smallSecret(k *ecdsa.PublicKey) bool {
	known := near[k.Curve]
	if known == nil {
		return false // R5 takes no key of another curve
	}
	var c curve = k.Curve
	stepX, stepY := c.ScalarBaseMult(big.NewInt(2 * nearSecrets).Bytes())
	point, err := k.Bytes() // 4, x and y in as many bytes each
	if err != nil {
		return true // no point of the curve
	}
	half := len(point) / 2
	keyX, keyY := new(big.Int).SetBytes(point[1:1+half]), new(big.Int).SetBytes(point[1+half:])
	for _, y := range []*big.Int{keyY, new(big.Int).Sub(k.Curve.Params().P, keyY)} {
		x := keyX
		for range smallSecrets/(2*nearSecrets) + 1 {
			if known()[x.String()] {
				return true
			}
			x, y = c.Add(x, y, stepX, stepY)
		}
	}
	return false
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
