package provider

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
)

var quantityForm = regexp.MustCompile(`^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE])?)$`)

var suffixes = map[string]*big.Rat{
	"": big.NewRat(1, 1), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3),
	"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1),
	"P": big.NewRat(1e15, 1), "E": big.NewRat(1e18, 1),
	"Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1),
	"Pi": big.NewRat(1<<50, 1), "Ei": big.NewRat(1<<60, 1),
}

// Amount reads a Kubernetes quantity ("4", "500m", "1.5Gi", "2e3") of a resource in the unit
// that cluster.Resources has for it: cpu in thousandths of a core, all others in whole
// units. It is rounded down: a node that turns out a little larger does no harm. What
// stands on a cloud's objects may be anybody's, so that exponents have two digits at most:
// Kubernetes' own reader works out the others.
func Amount(resource, text string) (int64, error) {
	scale := int64(1)
	if resource == "cpu" {
		scale = 1000
	}
	m := quantityForm.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("write a quantity, for example 4, 500m or 16Gi")
	}
	r, ok := new(big.Rat).SetString(m[1] + m[2])
	if !ok {
		return 0, fmt.Errorf("write a quantity, for example 4, 500m or 16Gi")
	}
	r.Mul(r, suffixes[m[3]])
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if r.Sign() < 0 {
		return 0, fmt.Errorf("a quantity cannot be below zero")
	}
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 {
		return 0, fmt.Errorf("the quantity is too large")
	}
	return n.Int64(), nil
}
