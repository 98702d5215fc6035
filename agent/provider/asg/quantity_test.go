package asg

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzQuantity compares with Kubernetes' own reading of quantities: whatever we
// accept it accepts too, and the numbers agree but for the direction of rounding.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"4", "1.5", "500m", "16Gi", "1.5Ki", "2e3", "2E", "0.1", ".5", "3.", "+2", "-1", "1e99", "12345678u", "9n", "0x1", "1ki", "7Pi"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := quantity(s, 1)
		if err != nil {
			return
		}
		q, err := resource.ParseQuantity(s)
		if err != nil {
			t.Fatalf("%q is %d here and not a quantity in Kubernetes: %v", s, got, err)
		}
		if v := q.Value(); v != got && v != got+1 {
			t.Errorf("%q is %d here and %d in Kubernetes", s, got, v)
		}
	})
}
