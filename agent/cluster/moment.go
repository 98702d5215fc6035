package cluster

import (
	"encoding/json"
	"time"
)

// Moment is a point in time in eight bytes, for values of which there are very many: a
// time.Time takes 24, and the garbage collector follows a pointer in each. It counts
// nanoseconds since 1970 in UTC; the zero value is no time at all, as time.Time's is.
type Moment int64

// At is t as a Moment. Years beyond 1678 to 2262 do not fit, and no pod is of them.
func At(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.UnixNano())
}

// IsZero tells that no time is known.
func (m Moment) IsZero() bool { return m == 0 }

// Time is the same in the usual type, in UTC; the zero time for the zero Moment.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// Add is the time that is d later, in the usual type.
func (m Moment) Add(d time.Duration) time.Time { return m.Time().Add(d) }

// MarshalJSON writes the time as RFC 3339, as a time.Time is written.
func (m Moment) MarshalJSON() ([]byte, error) { return json.Marshal(m.Time()) }

// UnmarshalJSON reads what MarshalJSON wrote; errors are those of time.Time.
func (m *Moment) UnmarshalJSON(data []byte) error {
	var t time.Time
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	*m = At(t)
	return nil
}
