package heartbeat

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLateNamesOnlyTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Monitor
		quick := m.Register("quick", time.Second)
		m.Register("slow", time.Minute)
		time.Sleep(2 * time.Second)
		late := m.Late(time.Now())
		if len(late) != 1 || late[0].Name != "quick" || late[0].Silent != 2*time.Second {
			t.Fatalf("late = %v, want quick silent for 2s", late)
		}
		quick()
		if late := m.Late(time.Now()); len(late) != 0 {
			t.Fatalf("late after a beat = %v, want nobody", late)
		}
		time.Sleep(time.Minute)
		if late := m.Late(time.Now()); len(late) != 2 {
			t.Fatalf("late = %v, want both", late)
		}
	})
}
