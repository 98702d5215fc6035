package services

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listCostLimit is far from the 30 seconds that a judgement may take. On an idle machine
// an update beside 200 Leases takes some 30 milliseconds.
const listCostLimit = 10 * time.Second

// cost measures what the API server takes for an update of the list of joins, which it
// compares with every worker's Lease. AUTOSCALER_TEST_LEASES says how many (default 200).
func (s *stolen) cost(t *testing.T) {
	total, err := strconv.Atoi(cmp.Or(os.Getenv("AUTOSCALER_TEST_LEASES"), "200"))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, total)
	for i := range total {
		names = append(names, fmt.Sprintf("ip-10-%d-%d-%d.eu-west-1.compute.internal", i>>16, i>>8&255, i&255))
	}
	parallel(16, names, func(name string) {
		now, life := metav1.NowMicro(), int32(40)
		if _, err := s.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &life, RenewTime: &now}}, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	for _, entries := range []int{1, 8, 32} {
		var took []time.Duration
		var before time.Duration
		for round := range 6 {
			if round == 1 { // the first replaces a list of another size
				took, before = nil, processorTime(t, s.cp.PID("kube-apiserver"))
			}
			change := relists(func(list *corev1.ConfigMap) {
				list.Data = map[string]string{}
				for i := range entries {
					list.Data[fmt.Sprintf("new-worker-%d-%d.eu-west-1.compute.internal", round, i)] = uid
				}
			})
			began := time.Now()
			if err := change(t, s); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began).Round(time.Millisecond))
		}
		slices.Sort(took)
		t.Logf("beside %d Leases an update with %d entries takes %v, and the API server %s of processor time", total, entries, took,
			(processorTime(t, s.cp.PID("kube-apiserver"))-before)/time.Duration(len(took)))
		if took[len(took)/2] > listCostLimit {
			t.Errorf("%s is more than %s", took[len(took)/2], listCostLimit)
		}
	}
	if lists(names[total-1], uid)(t, s) == nil {
		t.Error("the last worker is let on the list")
	}
}

// processorTime is what a process has used, all that it did beside included.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// proc_pid_stat(5): utime and stime are the fields 14 and 15, in hundredths of a second;
	// the second one, the name, may have blanks.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
