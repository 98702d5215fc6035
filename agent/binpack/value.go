package binpack

// CoreEquivalents weighs cpu, in thousandths of a core, and memory, in bytes, in cores.
func CoreEquivalents(milliCPU, memory float64) float64 {
	return milliCPU/1000 + memory/gibPerCore/(1<<30)
}

// gibPerCore is how much memory is worth a core: the ratio of the list prices of the
// large clouds, as Cluster Autoscaler's price expander has it.
const gibPerCore = 7.5
