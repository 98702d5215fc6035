package days

import (
	"math"
	"time"
)

// office: load rises from seven to ten, sags at noon, and goes after five; every workload
// follows it a little differently, as a HorizontalPodAutoscaler lets it.
func (d *drawer) office() {
	for i := range d.d.Work {
		low, high := d.pods(i, 1, 4), d.pods(i, 6, 32)
		shift := d.within(-time.Hour, time.Hour)
		step := d.within(8*time.Minute, 25*time.Minute)
		last := 0.0
		for at := time.Duration(0); at < length; at += step {
			t := at
			if t > 0 {
				t += d.within(0, step/2)
			}
			hour := (t - warmUp - shift).Hours()
			level := 1/(1+math.Exp(-(hour-8.5)*2)) - 1/(1+math.Exp(-(hour-17.5)*1.5)) - 0.2*math.Exp(-(hour-12.5)*(hour-12.5)*2)
			want := low + (high-low)*max(level, 0)*(0.92+0.16*d.Float64())
			if at == 0 || math.Abs(want-last) > 0.1*last { // the HorizontalPodAutoscaler's tolerance
				d.scale(t, i, want)
				last = want
			}
		}
	}
}

// flat gives every Deployment one size for the day.
func (d *drawer) flat(lo, hi float64) {
	for i := range d.d.Work {
		d.scale(0, i, d.pods(i, lo, hi))
	}
}

// jobs submits n Jobs within a time.
func (d *drawer) jobs(at, within time.Duration, work, n int, lo, hi time.Duration) {
	for range n {
		if t := at + d.within(0, within); t < length {
			d.d.Demand = append(d.d.Demand, Demand{At: t, Work: work, Runs: d.within(lo, hi)})
		}
	}
}

// spread is the time within which a batch is submitted: at once, as by a Job's controller, or
// little by little, as by a pipeline.
func (d *drawer) spread(most time.Duration) time.Duration {
	if d.IntN(2) == 0 {
		return time.Second
	}
	return d.within(time.Second, most)
}

// batch: batches of jobs come all day, each of one kind, between small services.
func (d *drawer) batch() {
	d.flat(0.5, 2)
	kinds := []int{d.workload(true), d.workload(true), d.workload(true)}
	for at := time.Duration(0); at < length; at += d.within(10*time.Minute, 80*time.Minute) {
		k := kinds[d.IntN(len(kinds))]
		least := d.within(2*time.Minute, 20*time.Minute)
		d.jobs(at, d.spread(4*time.Minute), k, max(int(d.pods(k, 4, 40)), 1), least, 2*least)
	}
}

// nightly: a quiet day, and between one and five large jobs that run long.
func (d *drawer) nightly() {
	d.flat(1, 4)
	for range 3 + d.IntN(4) {
		k := d.workload(true)
		least := d.within(10*time.Minute, 50*time.Minute)
		d.jobs(warmUp+d.within(time.Hour, 5*time.Hour), d.spread(20*time.Minute), k, max(int(d.pods(k, 10, 60)), 1), least, 2*least)
	}
}

// rolling: sizes hardly change, and every Deployment gets new templates during the day.
func (d *drawer) rolling() {
	d.flat(3, 18)
	for i := range d.d.Work {
		for range 3 + d.IntN(6) {
			d.d.Demand = append(d.d.Demand, Demand{At: d.within(warmUp, length), Work: i, Roll: true})
		}
		if d.IntN(3) == 0 {
			d.scale(d.within(warmUp, length), i, d.pods(i, 3, 18))
		}
	}
}

// decay: a day that begins large and loses most of its pods, each workload at its own pace.
func (d *drawer) decay() {
	for i := range d.d.Work {
		size, half := d.pods(i, 8, 36), d.within(2*time.Hour, 9*time.Hour)
		d.scale(0, i, size)
		for at := d.within(0, time.Hour); at < length; at += d.within(10*time.Minute, time.Hour) {
			d.scale(at, i, size*math.Exp2(-at.Hours()/half.Hours()))
		}
	}
}

// noPattern: sizes jump at random times to random sizes, and some jobs come.
func (d *drawer) noPattern() {
	for i := range d.d.Work {
		d.scale(0, i, d.pods(i, 1, 16))
		for at := d.within(0, 3*time.Hour); at < length; at += d.within(2*time.Minute, 3*time.Hour) {
			d.scale(at, i, d.pods(i, 1, 20))
		}
	}
	k := d.workload(true)
	for at := d.within(0, 4*time.Hour); at < length; at += d.within(time.Minute, 5*time.Hour) {
		d.jobs(at, time.Minute, k, 1+d.IntN(20), time.Minute, 40*time.Minute)
	}
}
