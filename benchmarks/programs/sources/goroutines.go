// Goroutines that take blocks of a large slice from a channel, count what is in them, and build a map of the commonest.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const block = 1 << 16

func fill(values []uint64) {
	state := uint64(88172645463325252)
	for k := range values {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		values[k] = state
	}
}

func work(values []uint64, places <-chan int, counts []uint32, found map[uint64]int) {
	for place := range places {
		part := values[place:min(place+block, len(values))]
		for k := range part {
			part[k] = part[k]*2862933555777941757 + 3037000493
			counts[part[k]>>48]++
		}
		found[part[0]%4096] += len(part)
	}
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func main() {
	length, workers, rounds := 10_000_000, 8, 3
	if len(os.Args) > 1 {
		workers, _ = strconv.Atoi(os.Args[1])
	}
	values := make([]uint64, length)
	fill(values)
	total := 0
	for round := 0; round < rounds; round++ {
		places := make(chan int, workers)
		var all sync.WaitGroup
		results := make([]map[uint64]int, workers)
		for k := range results {
			results[k] = map[uint64]int{}
			all.Add(1)
			go func(found map[uint64]int) {
				defer all.Done()
				work(values, places, make([]uint32, 1<<16), found)
			}(results[k])
		}
		for place := 0; place < length; place += block {
			places <- place
		}
		close(places)
		all.Wait()
		for _, found := range results {
			for _, count := range found {
				total += count
			}
		}
	}
	fmt.Println("checked", total)
}
