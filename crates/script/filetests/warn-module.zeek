# stages: rich
module M;

type R: record { a: count &optional; };

function f(r: R): count
	{
	local other = r;
	print other$a;
	return r$a;
	}

f([$a=1]);
