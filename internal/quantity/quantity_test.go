package quantity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzParse compares with Kubernetes' own reading of quantities: whatever we
// accept it accepts too, and the numbers agree but for the direction of rounding.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"4", "1.5", "500m", "16Gi", "1.5Ki", "2e3", "2E", "0.1", ".5", "3.", "+2", "-1", "1e99", "12345678u", "9n", "0x1", "1ki", "7Pi"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Parse("memory", s)
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

func TestParse(t *testing.T) {
	for in, want := range map[string]int64{
		"4": 4, "0": 0, "1.5": 1, "16Gi": 16 << 30, "1.5Ki": 1536, "2k": 2000, "2e3": 2000, "1E3": 1000, "1E": 1e18, "500m": 0, "3.": 3, ".5Mi": 1 << 19, "+2": 2,
	} {
		if got, err := Parse("memory", in); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
	if got, err := Parse("cpu", "500m"); err != nil || got != 500 {
		t.Errorf("500m cpu: %d, %v", got, err)
	}
	for _, in := range []string{"", "x", "-1", "1Gb", "1 Gi", "8Ei", "1e99", "0x10", "1/2", "NaN", "1e1000000000", "1e-999999999"} {
		if got, err := Parse("memory", in); err == nil {
			t.Errorf("%q: %d, want an error", in, got)
		}
	}
}
