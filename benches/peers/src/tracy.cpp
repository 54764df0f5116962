// Zones as a C++ program writes them. What keeps the loop is a barrier to the compiler, as in the
// loops of Rust.
#include "tracy/Tracy.hpp"

#include <stdint.h>

extern "C" void tracy_zone_loop( uint64_t calls )
{
    for( uint64_t i = 0; i < calls; i++ )
    {
        ZoneScopedN( "zone" );
        asm volatile( "" : : "r,m"( i ) : "memory" );
    }
}
