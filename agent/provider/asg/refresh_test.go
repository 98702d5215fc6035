package asg

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/refresh"
)

// TestReplacing: a group says who else replaces its machines from the first read on, until AWS tells that it is over. Where AWS
// does not answer its last answer holds; where it refuses to answer the group is taken for one without a refresh.
func TestReplacing(t *testing.T) {
	s, p := stage()
	clock := time.Now()
	p.now = func() time.Time { return clock }
	const unknown = "AWS has not told yet whether an instance refresh replaces its machines"
	words := func(status asgtypes.InstanceRefreshStatus) string {
		return "an instance refresh is under way (" + string(status) + ", 40 %)"
	}
	check := func(what, want, warning string) {
		t.Helper()
		clock = clock.Add(2 * refresh.Life)
		g := read(t, p)
		said := g.Replacing
		if g.ReplacingStale != "" {
			said = g.ReplacingStale
		}
		if warned := strings.Join(g.Warnings, "; "); said != want || said == unknown && g.Replacing != "" || !strings.Contains(warned, warning) || want == "" && strings.Contains(warned, "under way") {
			t.Errorf("%s: replacing %q, want %q; warnings %q", what, said, want, g.Warnings)
		}
	}
	s.refresh = asgtypes.InstanceRefreshStatusInProgress
	check("machines of one kind", "", "")
	if strings.Contains(strings.Join(s.calls, " "), awsapi.ActionDescribeRefreshes) {
		t.Error("AWS was asked about a group with machines of one kind")
	}
	s.groups[0].Instances[0].InstanceType = aws.String("m4.large") // the group starts m5.large
	s.fail[awsapi.ActionDescribeRefreshes] = code("Throttling", "Rate exceeded")
	check("throttled before the first answer", unknown, "cannot be read")
	delete(s.fail, awsapi.ActionDescribeRefreshes)
	replaced := map[asgtypes.InstanceRefreshStatus]bool{asgtypes.InstanceRefreshStatusPending: true, asgtypes.InstanceRefreshStatusInProgress: true,
		asgtypes.InstanceRefreshStatusCancelling: true, asgtypes.InstanceRefreshStatusRollbackInProgress: true, asgtypes.InstanceRefreshStatusBaking: true}
	for _, status := range asgtypes.InstanceRefreshStatus("").Values() {
		want := ""
		if replaced[status] {
			want = words(status)
		}
		s.refresh = status
		check(string(status), want, want)
	}
	s.refresh = asgtypes.InstanceRefreshStatusInProgress
	check("it begins", words(s.refresh), "none is drained")
	s.fail[awsapi.ActionDescribeRefreshes] = code("ServiceUnavailable", "try later")
	check("no answer", words(s.refresh), "cannot be read")
	s.fail[awsapi.ActionDescribeRefreshes] = code("AccessDenied", "User is not authorized to perform: autoscaling:DescribeInstanceRefreshes")
	check("no right", "", awsapi.ActionDescribeRefreshes)
	delete(s.fail, awsapi.ActionDescribeRefreshes)
	s.refresh = ""
	check("there is none", "", "")
}
