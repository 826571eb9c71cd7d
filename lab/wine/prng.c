/* bcryptprimitives.dll for Wines that lack it: ProcessPrng, the one function of it that Go programs need. */
#include <windows.h>
#include <ntsecapi.h>

BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
	while (size > 0) {
		ULONG n = size > 0x1000000 ? 0x1000000 : (ULONG)size;
		if (!RtlGenRandom(data, n))
			return FALSE;
		data += n;
		size -= n;
	}
	return TRUE;
}
