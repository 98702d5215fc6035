package convert

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// fill gives every field of a value something, or leaves it out, by chance.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(r.Int64N(2e9)+1, 0))))
		return
	case resource.Quantity:
		v.Set(reflect.ValueOf(*resource.NewMilliQuantity(r.Int64N(1e6), resource.DecimalSI)))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt32(r.Int32())))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && r.IntN(4) > 0 {
				fill(r, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		b := make([]byte, r.IntN(200))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		v.SetString(string(b))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(int64(r.Int32()))
	case reflect.Uint8:
		v.SetUint(uint64(r.IntN(256)))
	}
}

// somePod is a Pod with whatever its type has fields for.
func somePod(seed uint64) *corev1.Pod {
	p := &corev1.Pod{}
	fill(rand.New(rand.NewPCG(seed, 1)), reflect.ValueOf(p).Elem(), 0)
	for _, key := range keptAnnotations {
		if seed%2 == 0 {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, "true")
		}
	}
	return p
}

// TestDecodePod: a Pod that is decoded without some fields is, once it is stripped, the same as one
// that was decoded whole; and it is smaller.
func TestDecodePod(t *testing.T) {
	smaller := 0
	for seed := range uint64(500) {
		raw, err := somePod(seed).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		whole := &corev1.Pod{}
		if err := whole.Unmarshal(raw); err != nil {
			t.Fatal(err)
		}
		part, err := DecodePod(raw)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if part.Size() < whole.Size()*3/4 {
			smaller++
		}
		stripPod(whole)
		stripPod(part)
		whole.ManagedFields = nil
		if !reflect.DeepEqual(withoutItems(whole), withoutItems(part)) {
			t.Fatalf("seed %d: decoded\n%s\nwant\n%s", seed, part, whole)
		}
	}
	if smaller < 250 {
		t.Errorf("%d of 500 are smaller by a quarter", smaller)
	}
}

// withoutItems leaves of volumes that may be of several kinds, as no real volume is, nothing but the kinds.
func withoutItems(p *corev1.Pod) *corev1.Pod {
	for i := range p.Spec.Volumes {
		p.Spec.Volumes[i].VolumeSource = corev1.VolumeSource{}
	}
	return p
}

// FuzzDecodePod: no bytes make it panic, and it takes what client-go takes.
func FuzzDecodePod(f *testing.F) {
	for seed := range uint64(4) {
		raw, err := somePod(seed).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		whole := &corev1.Pod{}
		if whole.Unmarshal(raw) != nil {
			_, _ = DecodePod(raw)
			return
		}
		part, err := DecodePod(raw)
		if err != nil {
			t.Fatalf("client-go reads %s, and %v", whole, err)
		}
		if part.Name != whole.Name || part.Spec.NodeName != whole.Spec.NodeName || len(part.Spec.Containers) != len(whole.Spec.Containers) {
			t.Errorf("decoded\n%s\nwant\n%s", part, whole)
		}
	})
}

// BenchmarkDecodePod compares with decoding whole pods.
func BenchmarkDecodePod(b *testing.B) {
	raw, err := somePod(7).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	again := make([]byte, len(raw))
	for name, decode := range map[string]func([]byte) error{
		"part":  func(raw []byte) error { _, err := DecodePod(raw); return err },
		"whole": func(raw []byte) error { return new(corev1.Pod).Unmarshal(raw) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				copy(again, raw)
				if err := decode(again); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
