// Package quantity reads amounts of resources as Kubernetes writes them ("4", "500m",
// "1.5Gi", "2e3"): the one reader for tags, labels, annotations, groups.yaml and settings.
//
// The grammar is that of resource.Quantity. It refuses what that reader accepts from
// trusted objects only: negative amounts, amounts beyond half of int64, and exponents of
// more than two digits, which cost the reader seconds of processor time. It knows nothing
// of who wrote the text; callers say where it stands.
package quantity

import (
	"errors"
	"math"
	"math/big"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// The errors of Parse. Each tells the remedy.
var (
	errForm     = errors.New("write a quantity, for example 4, 500m or 16Gi")
	errNegative = errors.New("a quantity cannot be below zero")
	errTooLarge = errors.New("the quantity is too large")
	errFraction = errors.New("it is counted: write a whole number, for example 4")
)

// longExponent matches the exponents that Parse refuses: they make numbers of a thousand
// digits and more.
var longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3,}$`)

// maxText is longer than any quantity that a person writes.
const maxText = 64

// Parse reads an amount of a resource in the unit that cluster.Resources has for it: cpu
// in thousandths of a core, every other resource in whole units. It rounds down: a node
// that turns out to be a little larger than its template does no harm.
func Parse(name, text string) (int64, error) {
	if len(text) > maxText || longExponent.MatchString(text) {
		return 0, errForm
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return 0, errForm
	case q.Sign() < 0:
		return 0, errNegative
	}
	n := floor(q, name == "cpu")
	if !n.IsInt64() || n.Int64() > math.MaxInt64/2 {
		return 0, errTooLarge
	}
	return n.Int64(), nil
}

// Count reads an amount of a resource that is counted: a whole number, of whatever suffix.
func Count(text string) (int64, error) {
	n, err := Parse("", text)
	if err != nil {
		return 0, err
	}
	if q, err := resource.ParseQuantity(text); err != nil || q.Value() != n { // Value rounds up
		return 0, errFraction
	}
	return n, nil
}

// floor is q, or a thousand times q, rounded down; Quantity's own Value rounds up.
func floor(q resource.Quantity, milli bool) *big.Int {
	d := q.AsDec()
	n, scale := new(big.Int).Set(d.UnscaledBig()), int64(d.Scale())
	if milli {
		n.Mul(n, big.NewInt(1000))
	}
	if scale <= 0 {
		return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(-scale), nil))
	}
	return n.Quo(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil))
}
