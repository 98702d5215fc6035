package yardstick
import ("testing";"os";"strconv";"strings")
func TestOne(t *testing.T) {
	for _, x := range strings.Fields(os.Getenv("ONE")) {
		s,_ := strconv.ParseUint(x,10,64)
		v := judge(s, 300)
		t.Logf("%s: ours %.3f, Cluster Autoscaler %.3f, Karpenter %.3f, at least %.3f, at most %.3f (%s; bound %s)", v.m, v.ours, v.ca, v.karp, v.lower, v.upper, v.took, v.boundTook)
	}
}
